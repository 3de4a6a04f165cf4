package embedded

// SwitchOffJetStream does what a full disk does to the server.
func (n *NATS) SwitchOffJetStream() error { return n.server.Load().ShutdownJetStream() }
