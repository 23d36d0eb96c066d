-- Needs attempt
-- announce publishes a message with PUBLISH, SPUBLISH or BOTH, see classic.lua. It returns the
-- server's error, or '' without an error, and how many clients received the message. An ACL that
-- forbids the channel must not undo or hide a release.
local function announce(verb, channel, message)
  local both = verb == 'BOTH'
  if both then verb = 'SPUBLISH' end
  local heard, refusal = attempt(verb, channel, message)
  if both then
    -- Needs classic
    if classic_listeners(channel) ~= 0 then
      local more, another = attempt('PUBLISH', channel, message)
      heard, refusal = (heard or 0) + (more or 0), refusal or another
    end
  end
  return refusal and refusal.err or '', heard or 0
end
