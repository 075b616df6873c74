"""Every system in one table: what it promises and loses, by every way of asking."""
