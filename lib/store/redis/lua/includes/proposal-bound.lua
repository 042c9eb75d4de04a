-- A proposal that is further ahead of the server's clock is not taken: a client that is mistaken must not carry the fences of all servers
-- away. In us. Clocks that differ by more cost a second round trip for each grant, nothing else.
local PROPOSAL_BOUND_US = 1000000
