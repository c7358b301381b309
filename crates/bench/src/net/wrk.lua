-- Sends the requests of a list in random order, or a numbered request with a body, or whole requests
-- one after another.
-- Arguments: file of requests ("METHOD TARGET" on each line; "%d" in a target stands for a
-- number that grows), bytes of each body, "close" or "keep-alive", pause in ms before each request.
-- With "whole" in place of the bytes, the file has requests as they are sent, each behind a line
-- with its length.

local requests, numbered, sent, fields, body, whole = {}, nil, 0, {}, nil, false

local function read_whole(file)
  for line in file:lines() do
    requests[#requests + 1] = file:read(tonumber(line))
  end
end

function init(arguments)
  whole = arguments[2] == "whole"
  if whole then return read_whole(io.open(arguments[1], "rb")) end
  local bytes, pause = tonumber(arguments[2]), tonumber(arguments[4])
  if bytes > 0 then body = string.rep("x", bytes) end
  if arguments[3] == "close" then fields["Connection"] = "close" end
  for line in io.lines(arguments[1]) do
    local method, target = line:match("^(%S+) (.+)$")
    if target:find("%%d") then
      numbered = { method = method, target = target }
    else
      requests[#requests + 1] = wrk.format(method, target, fields, body)
    end
  end
  -- wrk pauses before each request if this function exists.
  if pause > 0 then
    function delay() return pause end
  end
end

function request()
  sent = sent + 1
  if whole then return requests[(sent - 1) % #requests + 1] end
  if numbered then
    return wrk.format(numbered.method, numbered.target:format(sent), fields, body)
  end
  return requests[math.random(#requests)]
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format("haul-bench: %d %d %d %d %d %d %d %d %d %d", summary.requests,
    summary.bytes, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
