-- Renew: "holder H has hold count C, TTL T and token F here". Extends a lock that is H's, and restores one that this
-- node missed or lost.
--
-- KEYS  1 lock  2 fence  3 record of this node  4 revoked
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 incarnation of this node that was checked ('' = no guard)
--       3 holder  4 hold count  5 TTL (ms)  6 token  7 TTL of the fence (ms; longer if it is ahead of the clock: see acquire.lua)
--
-- renewed    it was H's; the reply's TTL is what was left before
-- restored   it was absent
-- held       somebody else's, or a key of another type: lost here
-- revoked    H was force-released here
-- expired    it came after its last moment and did nothing
-- stranger   this node is not the one that was checked: it did nothing
-- unsettled  nobody has decided yet whether this node is new or has forgotten: it did nothing
--
-- The seventh value is how long this node is in quarantine yet (ms): what it does then counts as a vote only for who
-- knows that it remembered H all the while.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

-- The restart guard (see check.lua): a node that has forgotten votes only for those it cannot have forgotten.
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

local revoked = redis.call('GET', KEYS[4])
if revoked and string.find(' ' .. revoked .. ' ', ' ' .. ARGV[3] .. ' ', 1, true) then
  return {'revoked', 0, -2, '', 0, now}
end

local count = redis.pcall('HGET', KEYS[1], ARGV[3])
local ttl = redis.call('PTTL', KEYS[1])
if type(count) == 'table' then
  -- A key of another type is somebody else's. Any other error (no permission, say) is one, and no answer.
  if not string.find(count.err, 'WRONGTYPE', 1, true) then
    count.err = count.err .. ': HGET'
    return count
  end
  return {'held', 0, ttl, '', 0, now}
end
local status = count and 'renewed' or 'restored'
if not count and ttl ~= -2 then
  -- As in acquire.lua: a hash of many fields is no lock.
  if redis.call('HLEN', KEYS[1]) > 64 then
    return {'held', 0, ttl, '', 0, now}
  end
  local held = redis.call('HGETALL', KEYS[1])
  return {'held', 0, ttl, held[1], tonumber(held[2]) or 0, now}
end

-- Never shorten; no expiry at all (-1) counts as shorter, or a lock could stay for ever.
-- First of all that is written: with its memory full a server refuses SET and HSET, but not in a script that has begun to
-- write. And where PEXPIRE is not permitted, it must fail while there is no lock (see acquire.lua).
local lives = math.max(ttl, tonumber(ARGV[5]))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', lives))

-- Two quorums share a node: with the token stored here, whoever is granted this node later gets a greater one.
local stored, token = tonumber(redis.call('GET', KEYS[2]) or 0), tonumber(ARGV[6])
local fence, kept = math.max(stored, token), ARGV[7] -- as in acquire.lua
if fence > now then
  kept = string.format('%.0f', kept + (fence - now) / 1000)
end
if stored >= token then
  redis.call('PEXPIRE', KEYS[2], kept)
else
  local set = redis.pcall('SET', KEYS[2], ARGV[6], 'PX', kept)
  if set.err and (status == 'restored' or not string.find(set.err, 'OOM', 1, true)) then
    set.err = set.err .. ': SET'
    return set
  elseif set.err then
    fence = stored -- a lease shall not end for want of memory; the client asks again
  end
end
if count ~= ARGV[4] then
  redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
end
if status == 'restored' then
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
if longest and longest < tonumber(ARGV[5]) then
  -- As in acquire.lua: the lock may have been granted elsewhere only, or before this node's record was made anew.
  redis.call('HSET', KEYS[3], 'ttl', ARGV[5])
end
return {status, fence, ttl, ARGV[3], tonumber(ARGV[4]), now, math.ceil(quarantine / 1000)}
