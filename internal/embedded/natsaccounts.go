package embedded

import (
	"github.com/nats-io/nats-server/v2/server"

	"github.com/almanac-events/almanac/internal/access"
)

// natsUsers are the users of a server with their passwords. One without a password is not made.
func natsUsers(passwords map[string]string) []*server.User {
	var out []*server.User
	all := access.NATSUsers()
	for i := range all {
		u := &all[i]
		password, ok := passwords[u.Name]
		if !ok {
			continue
		}
		allow, deny := u.Subscribes()
		p := &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: u.Publish, Deny: u.Deny},
			Subscribe: &server.SubjectPermission{Allow: allow, Deny: deny},
		}
		if u.Answers {
			p.Response = &server.ResponsePermission{MaxMsgs: server.DEFAULT_ALLOW_RESPONSE_MAX_MSGS, Expires: server.DEFAULT_ALLOW_RESPONSE_EXPIRATION}
		}
		out = append(out, &server.User{Username: u.Name, Password: password, Permissions: p})
	}
	return out
}
