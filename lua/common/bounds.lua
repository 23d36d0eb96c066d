-- Somebody else may have put anything under a key of a lock. These bound what a script does then.
local max_entries = 10000 -- of a collection, and read holds of a lock: they take some 10 ms
local max_text = 256 -- bytes of a text that is returned; no owner is as long
