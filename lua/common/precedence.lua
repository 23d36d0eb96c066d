-- Precedence between the readers and writers of holdfast uses three keys beside the lock. Redisson
-- does not know precedence, so its clients only get the lock sooner. If a server is out of memory,
-- the lock works without precedence.
--   writer  "<kept> <owner>": this writer waits, and new readers step back for it as long as it
--           renews the key. When the writer last renewed the key, readers had stepped back for kept
--           milliseconds. The TTL of the key says when that was, because some servers do not let
--           scripts read the time
--   reader  a reader waits for a writer; when the writer leaves, this key becomes
--   turn    a moment in which readers that waited may pass, and writers step back
-- Needs attempt

-- kept_back returns the writer that waits, for how many milliseconds readers have stepped back for
-- it, and the TTL of its key; or nil if no writer waits. waiter_ttl is the TTL of a renewed key.
local function kept_back(writer, waiter_ttl)
  local kept, owner = string.match(redis.call('GET', writer) or '', '^(%d+) (.*)$')
  if not kept then return nil end
  local left = redis.call('PTTL', writer)
  return owner, tonumber(kept) + math.max(tonumber(waiter_ttl) - left, 0), left
end

-- waiting_writer returns the writer for which new readers step back, and for how many milliseconds
-- more, or nil if there is no such writer.
local function waiting_writer(writer, bound, waiter_ttl)
  local owner, kept, left = kept_back(writer, waiter_ttl)
  if not owner or left <= 0 or kept >= bound then return nil end
  return owner, math.min(bound - kept, left)
end

-- writer_waits makes new readers step back for a writer, for bound milliseconds at a time, with
-- pauses of a tenth of bound.
local function writer_waits(writer, owner, bound, waiter_ttl)
  local waiting, kept = kept_back(writer, waiter_ttl)
  if waiting and waiting ~= owner then return end
  if not waiting or 10 * kept >= 11 * bound then kept = 0 end
  attempt('SET', writer, kept .. ' ' .. owner, 'PX', waiter_ttl)
end

-- stop_waiting ends the precedence of a writer. It reports whether readers stepped back for it.
local function stop_waiting(writer, owner)
  local waiting = string.match(redis.call('GET', writer) or '', '^%d+ (.*)$')
  return waiting == owner and attempt('DEL', writer) == 1
end

-- reader_waits makes readers come first when a writer leaves.
local function reader_waits(reader, waiter_ttl) attempt('SET', reader, '1', 'PX', waiter_ttl) end

-- begin_turn lets those readers pass that waited for the leaving writer, if the ACL allows it.
local function begin_turn(reader, turn, milliseconds)
  if redis.call('EXISTS', reader) == 1 then
    attempt('SET', turn, '1', 'PX', milliseconds)
    attempt('DEL', reader)
  end
end

-- end_turn ends the turn after the last reader, with 10 ms for readers whose request is in flight.
local function end_turn(turn)
  if redis.call('PTTL', turn) > 10 then attempt('PEXPIRE', turn, 10) end
end
