-- Needs attempt
-- announce publishes a message. It returns the server's refusal, '' if there is none, and how many
-- received it. An ACL that forbids the channel must not undo or hide a release.
local function announce(verb, channel, message)
  local heard, refusal = attempt(verb, channel, message)
  return refusal and refusal.err or '', heard or 0
end
