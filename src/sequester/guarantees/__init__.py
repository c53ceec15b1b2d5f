"""What a single release promises: criteria over its classes, and the requirement a policy makes of them.

Plain definitions in numpy. Methods never decide with this code and this code never uses a method's: it is the judge.
"""
