-- Refusals: who has the lock, which is a field in the hash that is the lock's own key.

-- holder: an owner that has the lock; of several, one of them.
local function holder(lock)
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    if field ~= 'mode' then
      return field
    end
  end
  return ''
end

-- refused: the answer to an attempt that somebody's hold is in the way of. It is to look again after nap milliseconds at
-- the latest, or with nap = -1 when the lease should be over.
local function refused(lock, nap)
  return {redis.call('PTTL', lock), holder(lock), nap}
end
