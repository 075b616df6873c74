"""Mechanisms of other libraries, one file per library: their promises as claims of plaudit, and how to run them.

A file imports its library when you call a function of it. The library draws its randomness from the operating system.
"""
