
-- The rule: in state x, the jobs at each node, one more job at node k has the price
-- index_k[x_k] + charge_k; beyond the last entry the node refuses (an infinite price), or the last
-- entry goes on. The job goes to the first node in the order of ties whose price is at most
-- ties.margin above the least one; where every price is infinite it goes outside.
--
-- In HAProxy (lua-load; Lua 5.3 or newer) each policy is a sample fetch, lua.index.POLICY, for rules
-- in the backend whose servers are the nodes. Its value is the server's name, or "outside". The jobs
-- at a node are its sessions and its queue (srv_conn + srv_queue). A server that is down, in
-- maintenance or drained takes no jobs. lua.index.POLICY(txn.jobs) also writes what was read into the
-- variable txn.jobs, such as 2,0,5!; the mark is at nodes that were passed over as unavailable.
-- The backend is called nodes, unless the global section says setenv MDPCLOUD_BACKEND its_name.
--
-- Outside HAProxy, dofile("this file").rules.POLICY({2, 0, 5}) is 0 for outside, or k for the kth node.

local INFINITE = math.huge

-- what must hold of the table

local function check(condition, message, ...)
  if not condition then
    error("index table: " .. string.format(message, ...), 0)
  end
end

local function check_number(value, least, message, ...)
  check(type(value) == "number" and value >= least and math.abs(value) < INFINITE, message, ...)
end

local function check_index(one, policy, k, charge, margin)
  local place = string.format("policies.%s, node %d", policy, k - 1)
  check(type(one) == "table" and type(one.index) == "table", "%s: index is missing", place)
  check(one.beyond == "refuse" or one.beyond == "last", "%s: beyond must be refuse or last", place)
  check_number(one.states, one.beyond == "last" and 1 or 0, "%s: states is missing", place)
  for i = 1, one.states do
    local index = one.index[i]
    check_number(index, -INFINITE, "%s: no finite index of state %d", place, i - 1)
    check_number(index + charge + margin, -INFINITE, "%s: no finite price of state %d", place, i - 1)
  end
  check(#one.index == one.states, "%s: %d indices of %d states", place, #one.index, one.states)
end

local function check_nodes(nodes)
  check(type(nodes) == "table" and #nodes > 0, "nodes are missing")
  for k, node in ipairs(nodes) do
    check(type(node.server) == "string", "node %d: server is missing", k - 1)
    check_number(node.servers, 1, "node %d: servers must be >= 1", k - 1)
    check_number(node.charge, -INFINITE, "node %d: charge must be finite", k - 1)
  end
end

local function check_order(ties, n)
  check(type(ties) == "table" and type(ties.order) == "table", "ties are missing")
  check_number(ties.margin, 0, "ties.margin must be >= 0")
  check(#ties.order == n, "ties.order has %d nodes; there are %d", #ties.order, n)
  local found = {}
  for _, k in ipairs(ties.order) do
    check(math.type(k) == "integer" and k >= 0 and k < n and not found[k],
      "ties.order must have each of 0 ... %d once", n - 1)
    found[k] = true
  end
end

local function check_table(t)
  check(t.format == "mdpcloud index table" and t.version == 1,
    "this program reads mdpcloud index table, version 1, not %s, version %s", t.format, t.version)
  check_nodes(t.nodes)
  check_order(t.ties, #t.nodes)
  check(type(t.policies) == "table" and next(t.policies), "policies are missing")
  for policy, indices in pairs(t.policies) do
    check(#indices == #t.nodes, "policies.%s has %d indices for %d nodes",
      policy, #indices, #t.nodes)
    for k, one in ipairs(indices) do
      check_index(one, policy, k, t.nodes[k].charge, t.ties.margin)
    end
  end
end

-- the decision

local function prices(one, charge)
  local found = {}
  for i, index in ipairs(one.index) do
    found[i] = index + charge
  end
  return found, one.beyond == "last" and found[#found] or INFINITE
end

local function minimum(values)
  local least = INFINITE
  for _, value in ipairs(values) do
    if value < least then least = value end
  end
  return least
end

-- The rule of a policy: from the jobs at each node to k for the kth node, or 0 for outside.
-- takes(k, ...), if given, says whether node k takes jobs at all; it is asked only about nodes that
-- the job would go to.
local function rule(t, indices)
  local n, margin, order = #t.nodes, t.ties.margin, {}
  local price, beyond, found = {}, {}, {}
  for k, one in ipairs(indices) do
    price[k], beyond[k] = prices(one, t.nodes[k].charge)
    order[k] = t.ties.order[k] + 1
  end

  local function first(limit)
    for i = 1, n do
      if found[order[i]] <= limit then return order[i] end
    end
  end

  return function(jobs, takes, ...)
    local least = INFINITE
    for k = 1, n do
      local p = price[k][jobs[k] + 1] or beyond[k]
      found[k] = p
      if p < least then least = p end
    end
    while least < INFINITE do
      local k = first(least + margin)
      if not takes or takes(k, ...) then return k end
      found[k] = INFINITE
      least = minimum(found)
    end
    return 0
  end
end

-- HAProxy

local OUTSIDE = "outside"

local function check_known(servers, names, backend)
  local known = { [OUTSIDE] = true }
  for _, name in ipairs(names) do known[name] = true end
  for name in pairs(servers) do
    check(known[name], "backend %s has the server %s, which is no node of the table: no job would " ..
      "ever go there; the nodes' servers are %s", backend, name, table.concat(names, ", "))
  end
end

-- By the place of its node in the table; HAProxy has the servers once it has read the configuration.
local function find_servers(t, names, backend)
  local proxy = core.backends[backend]
  check(proxy, "there is no backend %s (setenv MDPCLOUD_BACKEND names another)", backend)
  check_known(proxy.servers, names, backend)
  local found = {}
  for k, node in ipairs(t.nodes) do
    local server = proxy.servers[node.server]
    check(server, "backend %s has no server %s, for node %d", backend, node.server, k - 1)
    local maxconn = tonumber(server:get_maxconn())
    check(maxconn == node.servers, "server %s/%s has maxconn %s, but its node has %d servers: jobs " ..
      "in service and jobs waiting would be told apart wrongly; write maxconn %d",
      backend, node.server, maxconn, node.servers, node.servers)
    found[k] = server
  end
  return found
end

local function say_what_is_loaded(t, names, policies)
  local listed = {}
  for policy in pairs(policies) do listed[#listed + 1] = policy end
  table.sort(listed)
  local text = string.format("index table: %s (%s), sha256 %s, policies %s, nodes %s",
    t.name, t.system, t.scenario_sha256 and t.scenario_sha256:sub(1, 12) or "none",
    table.concat(listed, " "), table.concat(names, " "))
  core.log(core.notice, (text:gsub("%c", " ")))
end

local function is_true(value)  -- HAProxy 2.6 gives Lua 0 and 1 for booleans
  return value ~= 0 and value ~= false
end

local function register(t, rules)
  local n, names, servers = #t.nodes, {}, nil
  local backend = os.getenv("MDPCLOUD_BACKEND") or "nodes"
  for k, node in ipairs(t.nodes) do names[k] = node.server end
  core.register_init(function()
    servers = find_servers(t, names, backend)
    say_what_is_loaded(t, names, rules)
  end)

  local jobs = {}

  local function takes(k, f)
    if is_true(f:srv_is_up(names[k])) and not is_true(servers[k]:is_draining()) then return true end
    jobs[k] = jobs[k] .. "!"
    return false
  end

  for policy, decide in pairs(rules) do
    core.register_fetches("index." .. policy, function(txn, variable)
      local f = txn.f
      local conn, queue = f.srv_conn, f.srv_queue
      for k = 1, n do
        local name = names[k]
        jobs[k] = conn(f, name) + queue(f, name)
      end
      local k = decide(jobs, takes, f)
      if variable then txn:set_var(variable, table.concat(jobs, ",")) end
      return names[k] or OUTSIDE
    end)
  end
end

check_table(TABLE)
local rules = {}
for policy, indices in pairs(TABLE.policies) do rules[policy] = rule(TABLE, indices) end
if core then register(TABLE, rules) end
return { table = TABLE, rules = rules }
