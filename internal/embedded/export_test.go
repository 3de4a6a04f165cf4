package embedded

import "github.com/almanac-events/almanac/internal/access"

// SwitchOffJetStream does what a full disk does to the server.
func (n *NATS) SwitchOffJetStream() error { return n.server.Load().ShutdownJetStream() }

// Admit gives an engine that does not run yet further accounts.
func (c *ClickHouse) Admit(users ...access.ClickHouseUser) { c.more = append(c.more, users...) }

// SenderConns are the connections of clients without credentials.
const SenderConns = natsSenderConns
