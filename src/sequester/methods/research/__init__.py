"""What papers propose and few series need: kept for comparison, and loaded only when a policy asks for it."""
