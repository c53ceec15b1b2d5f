"""What the classes of a next release must keep, given everything published before."""
