"""Millpond from Python: why does the memory of a training program grow?"""
