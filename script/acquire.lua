-- Acquire: "holder H has hold count C and TTL T here", if nobody else holds the lock.
--
-- KEYS  1 lock  2 fence  3 record of this node  4 revoked
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 incarnation of this node that was checked ('' = no guard)
--       3 holder  4 hold count  5 TTL (ms)  6 proposed token (us)
--       7 how far a proposal may be from this node's clock (us)  8 TTL of the fence (ms; longer if it is ahead of the clock)
--       9 how many tokens below the fence are H's as well
--
-- granted      the lock was free: it is H's now, and the fence moved up
-- already      it was H's before: the request was sent twice, and the fence stays
-- held         somebody else's, or a key of another type
-- revoked      H was force-released here before it had the lock on a quorum of nodes
-- expired      it came after its last moment and did nothing
-- exhausted    the fence cannot grow any more (2^53), so no token could be told from the last
-- stranger     this node is not the one that was checked: it did nothing
-- unsettled    nobody has decided yet whether this node is new or has forgotten: it did nothing
-- quarantined  the lock is free as far as this node remembers; it did nothing, and the TTL is the quarantine's
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

-- The restart guard (see check.lua): a node that has forgotten does not vote.
local quarantine, longest = 0, nil
if ARGV[2] ~= '' then
  local record = redis.call('HMGET', KEYS[3], 'incarnation', 'until', 'ttl')
  if record[1] ~= ARGV[2] then
    return {'stranger', 0, -2, '', 0, now}
  elseif not record[2] then
    return {'unsettled', 0, -2, '', 0, now}
  end
  quarantine, longest = math.max(0, tonumber(record[2]) - now), tonumber(record[3])
end

local ttl, held = redis.call('PTTL', KEYS[1]), {}
if ttl ~= -2 then
  -- A key of another type is somebody else's, and so is a hash of many fields: an application's, which may be too large for a
  -- reply. Any other error (no permission, say) is one, and no answer.
  local fields = redis.pcall('HLEN', KEYS[1])
  if type(fields) == 'table' and not string.find(fields.err, 'WRONGTYPE', 1, true) then
    fields.err = fields.err .. ': HLEN'
    return fields
  elseif type(fields) == 'table' or fields > 64 then
    return {'held', 0, ttl, '', 0, now}
  end
  held = redis.call('HGETALL', KEYS[1])
end
local fence = tonumber(redis.call('GET', KEYS[2]) or 0)
local status = 'granted'
if held[1] then
  local mine = redis.call('HEXISTS', KEYS[1], ARGV[3]) == 1
  if not mine then
    return {'held', fence, ttl, held[1], tonumber(held[2]) or 0, now}
  end
  status = 'already'
  -- Never shorten what a later request of this holder has set.
  if ttl < tonumber(ARGV[5]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[5])
  end
  redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
elseif quarantine > 0 then
  return {'quarantined', fence, math.ceil(quarantine / 1000), '', 0, now}
else
  -- A request that is late must not put back a holder that a force-release has found on another node.
  local revoked = redis.call('GET', KEYS[4])
  if revoked and string.find(' ' .. revoked .. ' ', ' ' .. ARGV[3] .. ' ', 1, true) then
    return {'revoked', fence, -2, '', 0, now}
  end
  local clamp = tonumber(ARGV[7])
  local proposal = math.max(now - clamp, math.min(now + clamp, tonumber(ARGV[6])))
  local more = tonumber(ARGV[9])
  -- From 2^53 on a Lua number cannot be told from its successor.
  if fence >= 9007199254740991 - more then
    return {'exhausted', fence, -2, '', 0, now}
  end
  fence = math.max(fence + 1, proposal) + more
  -- A counter that is ahead of the clock, since one was wrong once, stays until the clock has overtaken it: were it gone
  -- before, the next token would be less than the last.
  -- To write a number of so many digits costs as much as a command: most often the proposal is the fence, as it is written.
  local written, kept = ARGV[6], ARGV[8]
  if fence ~= tonumber(written) then
    written = string.format('%.0f', fence)
  end
  if fence > now then
    kept = string.format('%.0f', kept + (fence - now) / 1000)
  end
  redis.call('SET', KEYS[2], written, 'PX', kept)
  -- A missing permission cuts a script off and undoes nothing. So what could fail comes before the lock is there: the
  -- first PEXPIRE finds no key and only shows that the second, without which the lock would stay for ever, will work.
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
if longest and longest < tonumber(ARGV[5]) then
  -- How long a quarantine has to last at least, should this node forget.
  redis.call('HSET', KEYS[3], 'ttl', ARGV[5])
end
return {status, fence, math.max(ttl, tonumber(ARGV[5])), ARGV[3], tonumber(ARGV[4]), now}
