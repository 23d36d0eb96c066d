-- Needs attempt
-- Scripts call not_held if an owner does not hold a lock. It returns nil, or the error of a
-- replica. A replica may lag behind its master or have lost it, so the owner may hold the lock all
-- the same. A replica rejects every write, even if the write would change nothing, and no lock has
-- an empty field.
local function not_held(lock)
  local _, refusal = attempt('HDEL', lock, '')
  if refusal and string.find(refusal.err, 'READONLY', 1, true) then return refusal end
end
