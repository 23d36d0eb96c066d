-- Needs attempt
-- not_held is called when an owner does not hold a lock. It returns nil, or the refusal of a
-- replica. That may lag behind its master, or have lost it, and the lock may be held all the same.
-- A replica refuses every write, even one that would change nothing: no lock has an empty field.
local function not_held(lock)
  local _, refusal = attempt('HDEL', lock, '')
  if refusal and string.find(refusal.err, 'READONLY', 1, true) then return refusal end
end
