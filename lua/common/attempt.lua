-- attempt runs a command and returns its reply, or nil and the server's error, a table with err.
-- redis.call would abort the script instead.
local function attempt(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then return nil, reply end
  return reply
end
