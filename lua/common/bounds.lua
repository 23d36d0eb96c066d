-- Somebody else may have written anything to a key of a lock. These numbers bound the work of a
-- script on such a key.
local max_entries = 10000 -- of a collection, and read holds of a lock; they take some 10 ms
local max_text = 256 -- bytes of a returned text; no owner is as long
