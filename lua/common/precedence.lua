-- Precedence between the readers and writers of this library. Redisson knows nothing of it: it is three keys beside the
-- lock, and whoever ignores them is only quicker. A server without memory for them does without.
--
--   writer  "<since> <owner>": this writer waits for readers to leave, and new readers step back for it. The writer
--           renews the key; it is gone soon after the writer is.
--   reader  a reader waits for a writer. When one leaves, that becomes
--   turn    a moment in which readers that waited may pass, and writers step back. It is over soon after they have left.

-- waiting_writer: the writer that new readers step back for, and for how many milliseconds; nil if there is none.
local function waiting_writer(writer, bound)
  local since, owner = string.match(redis.call('GET', writer) or '', '^(%d+) (.*)$')
  if not since then
    return nil
  end
  local left = math.min(tonumber(since) + bound - now(), redis.call('PTTL', writer))
  if left <= 0 then
    return nil -- it has kept readers back for long enough
  end
  return owner, left
end

-- await_readers: has new readers step back for a writer, for bound milliseconds at a time with a tenth of that between.
local function await_readers(writer, owner, bound, lapse)
  local time = now()
  local since, waiting = string.match(redis.call('GET', writer) or '', '^(%d+) (.*)$')
  if waiting and waiting ~= owner then
    return
  end
  since = tonumber(since) or time
  if time >= since + bound * 1.1 then
    since = time
  end
  redis.pcall('SET', writer, whole(since) .. ' ' .. owner, 'PX', lapse)
end

-- await_writer: has readers come first when a writer leaves.
local function await_writer(reader, lapse)
  redis.pcall('SET', reader, '1', 'PX', lapse)
end

-- take_turns: a writer has left. Readers that waited for it have their turn.
local function take_turns(reader, turn, milliseconds)
  if redis.call('EXISTS', reader) == 1 then
    -- With pcall, because an ACL that forbids it must not hide that the lock was released.
    redis.pcall('SET', turn, '1', 'PX', milliseconds)
    redis.pcall('DEL', reader)
  end
end

-- end_turn: all readers have left. Some of those whose turn it is may be on their way still.
local function end_turn(turn)
  if redis.call('PTTL', turn) > 10 then
    redis.pcall('PEXPIRE', turn, 10)
  end
end

-- stop_waiting: nobody steps back for this writer any more. It returns whether somebody did.
local function stop_waiting(writer, owner)
  local waiting = string.match(redis.call('GET', writer) or '', '^%d+ (.*)$')
  return waiting == owner and redis.pcall('DEL', writer) == 1
end
