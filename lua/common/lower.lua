-- Needs attempt
-- lower sets the count of the holds that are left. It returns nil, or the server's error. It
-- ignores a lack of memory, because the count is informative, and the last release drops the field
-- whatever its count.
local function lower(lock, field, count)
  local _, refusal = attempt('HSET', lock, field, count)
  if refusal and not string.find(refusal.err, 'OOM', 1, true) then return refusal end
end
