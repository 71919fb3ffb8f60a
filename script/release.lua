-- Release: H has no lock here. Also the rollback of a failed attempt, told apart by what it publishes.
--
-- KEYS  1 lock  2 fence
-- ARGV  1 last moment (unused: gone is gone, whenever it arrives)  2 holder  3 channel
--       4 what to publish: '0' the lock is free, '1' only a failed attempt was rolled back
--       5 token (0 = none)  6 TTL of the fence (ms; longer if it is ahead of the clock: see acquire.lua)
--
-- released  it was H's, and is deleted; in place of the hold count the reply has how many heard of it
-- absent    nobody's
-- held      somebody else's, or a key of another type
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- What frees the lock comes first: with its memory full, a server refuses SET. (DEL it takes, and SET after it.)
local mine = redis.pcall('HEXISTS', KEYS[1], ARGV[2])
if type(mine) == 'table' and not string.find(mine.err, 'WRONGTYPE', 1, true) then
  -- A key of another type is somebody else's. Any other error (no permission, say) is one, and no answer.
  mine.err = mine.err .. ': HEXISTS'
  return mine
end
local status, ttl, holder, count = 'absent', -2, '', 0
if mine == 1 then
  redis.call('DEL', KEYS[1])
  -- A hint to waiters, who poll besides: a client that may not publish may still release.
  local heard = redis.pcall('PUBLISH', ARGV[3], ARGV[4])
  status, holder, count = 'released', ARGV[2], type(heard) == 'number' and heard or 0
else
  ttl = redis.call('PTTL', KEYS[1])
  if ttl ~= -2 then
    status = 'held'
    -- As in acquire.lua: what is no lock is somebody else's.
    if mine == 0 and redis.call('HLEN', KEYS[1]) <= 64 then
      local held = redis.call('HGETALL', KEYS[1])
      holder, count = held[1], tonumber(held[2]) or 0
    end
  end
end

-- The last request of a lease is the last chance to tell this node its token: a node that was missed, or granted a
-- lower fence, must not be the only one left that remembers too little. But a fence that cannot be read or written must
-- not keep the lock from being released.
local token = tonumber(ARGV[5])
local fence = 0
if token > 0 then
  local stored = redis.pcall('GET', KEYS[2])
  if type(stored) ~= 'table' then
    fence = tonumber(stored or 0) or 0
    if fence < token and redis.pcall('SET', KEYS[2], string.format('%.0f', token), 'PX',
        string.format('%.0f', ARGV[6] + math.max(0, token - now) / 1000)).ok then
      fence = token
    end
  end
end
return {status, fence, ttl, holder, count, now}
