package embedded

import "github.com/almanac-events/almanac/internal/access"

// SwitchOffJetStream does what a full disk does to the server.
func (n *NATS) SwitchOffJetStream() error { return n.server.Load().ShutdownJetStream() }

// Admit gives a running engine further accounts (access.SQLAccount), which it has once it is started again.
func (c *ClickHouse) Admit(users ...access.ClickHouseUser) error {
	_, tcp, http, err := c.endpoint.ports()
	if err != nil {
		return err
	}
	reader, accounts := c.secrets[UserReader], c.accounts()
	ours := accounts.Password
	accounts.More = users
	accounts.Password = func(user string) string {
		if _, known := c.secrets[user]; known {
			return ours(user)
		}
		return "<password_sha256_hex>" + hashed(access.SQLPassword(reader, user)) + "</password_sha256_hex>"
	}
	return c.files(tcp, http, accounts).write(c.configDir())
}

// SenderConns are the connections of clients without credentials.
const SenderConns = natsSenderConns
