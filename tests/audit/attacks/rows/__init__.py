"""Tests of the attack on rows."""
