package embedded

import (
	"fmt"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/almanac-events/almanac/internal/access"
)

// natsAccounts are the accounts of a server and the users in them, as access.NATSAccounts writes them. That of the streams is the
// one which a server without accounts has: its streams are where they were. No passwords: no accounts.
func natsAccounts(passwords map[string]string) ([]*server.Account, []*server.User, error) {
	if len(passwords) == 0 {
		return nil, nil, nil
	}
	var o server.Options
	err := o.ProcessConfigString(access.NATSAccounts(natsSenderConns, func(user string) string {
		if password, ok := passwords[user]; ok {
			return strconv.Quote(password)
		}
		return ""
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("embedded NATS: its accounts: %w", err)
	}
	for _, a := range o.Accounts {
		if a.Name == access.NATSAccount {
			a.Name = server.DEFAULT_GLOBAL_ACCOUNT
		}
	}
	return o.Accounts, o.Users, nil
}
