"""Pods: people share their values out in smallest groups, mixed anew in every release; decoys fill gaps."""
