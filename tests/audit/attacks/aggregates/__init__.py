"""Tests of the attack on outputs as a whole."""
