-- Settle: what an incarnation that began without a record is worth. All nodes together tell whether the cluster is new
-- (no quarantine) or this node has forgotten.
--
-- KEYS  1 record of this node
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 incarnation  3 run id of the server  4 quarantine (ms; 0 = none)
--       5 longest TTL known (ms)  6 how many nodes the client is configured with  7 durable: 'yes' or 'no'
--       8 for how long a server that Sentinel has replaced may go on voting (ms), see check.lua
--
-- settled   decided, now or by somebody else before
-- stranger  this node is not the one that was decided upon: it did nothing
-- expired   it came after its last moment and did nothing
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

-- Asked here and not taken from the record: the decision was about a server, and this may be another one.
local server = redis.pcall('INFO', 'server')
local run = type(server) ~= 'table' and string.match(server, 'run_id:(%w+)') or ''
local record = redis.call('HMGET', KEYS[1], 'incarnation', 'until', 'ttl')
if record[1] ~= ARGV[2] or run ~= ARGV[3] then
  return {'stranger', 0, -2, '', 0, now}
end
if record[2] then
  -- Never shorten a quarantine that somebody else found necessary.
  return {'settled', 0, -2, '', 0, now}
end
-- Since the decision was made, somebody may have told of a longer TTL than whoever made it had heard of.
local ttl = math.max(tonumber(record[3]), tonumber(ARGV[5]))
local till = 0
if tonumber(ARGV[4]) > 0 then
  till = now + (math.max(ttl, tonumber(ARGV[4])) + tonumber(ARGV[8])) * 1000
end
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', till), 'ttl', string.format('%.0f', ttl), 'nodes', ARGV[6],
  'durable', ARGV[7])
return {'settled', 0, -2, '', 0, now}
