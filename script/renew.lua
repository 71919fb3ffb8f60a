-- Renew: "holder H has hold count C, TTL T and token F here". Extends a lock that is H's, and restores one that this
-- node missed or lost.
--
-- KEYS  1 lock  2 fence  3 revoked
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 holder  3 hold count  4 TTL (ms)
--       5 token  6 TTL of the fence (ms)
--
-- renewed   it was H's; the reply's TTL is what was left before
-- restored  it was absent
-- held      somebody else's, or a key of another type: lost here
-- revoked   H was force-released here
-- expired   it came after its last moment and did nothing
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

local revoked = redis.call('GET', KEYS[3])
if revoked and string.find(' ' .. revoked .. ' ', ' ' .. ARGV[2] .. ' ', 1, true) then
  return {'revoked', 0, -2, '', 0, now}
end

local held = redis.pcall('HGETALL', KEYS[1])
if held.err then
  -- A key of another type is somebody else's. Any other error (no permission, say) is one, and no answer.
  if not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  end
  return {'held', 0, redis.call('PTTL', KEYS[1]), '', 0, now}
end
local ttl = redis.call('PTTL', KEYS[1])
local status = 'restored'
if held[1] then
  if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
    return {'held', 0, ttl, held[1], tonumber(held[2]) or 0, now}
  end
  status = 'renewed'
end

-- Two quorums share a node: with the token stored here, whoever is granted this node later gets a greater one.
local fence = math.max(tonumber(redis.call('GET', KEYS[2]) or 0), tonumber(ARGV[5]))
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[6])
-- Never shorten; no expiry at all (-1) counts as shorter, or a lock could stay for ever.
if ttl < tonumber(ARGV[4]) then
  -- Before HSET, too: where it is not permitted, it must fail while there is no lock (see acquire.lua).
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
if status == 'restored' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return {status, fence, ttl, ARGV[2], tonumber(ARGV[3]), now}
