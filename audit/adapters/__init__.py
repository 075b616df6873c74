"""Mechanisms of other libraries, one file a library: what they promise in our words, and how they are run.

Each library is imported when a function of its file is called. What it draws comes from the operating system.
"""
