-- Levels: the number in an owner's field.

-- lower: notes that count levels are left. It returns nil, or the server's refusal.
local function lower(lock, field, count)
  -- A server that is out of memory refuses HSET. The count in Redis is for the eyes of others, ours is
  -- authoritative, and the last release drops the field whatever it says: so a level can be left all the same.
  local written = redis.pcall('HSET', lock, field, count)
  if type(written) == 'table' and written.err and not string.find(written.err, 'OOM', 1, true) then
    return written
  end
  return nil
end
