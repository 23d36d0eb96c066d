-- Commands that may fail.

-- attempt: runs a command, and returns nil if the server refuses it: a script must not end halfway.
local function attempt(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return nil
  end
  return reply
end
