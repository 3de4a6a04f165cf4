package schemas

import (
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
)

// InboxPrefix is what the inboxes of a user of NATS begin with: who may hear those of one user hears no other's answers.
// Without a user it is that of clients that know nothing of users.
func InboxPrefix(user string) string {
	if user == "" || strings.ContainsAny(user, ".*> \t\r\n") {
		return tokenInbox
	}
	return tokenInbox + "." + user
}

// OwnInbox is the last option of a connection: it gives it the inboxes of its user, unless the others say which. The user is
// the one of the options, else of the first URL. One of a file of credentials is not known here.
func OwnInbox(o *nats.Options) error {
	user := o.User
	if user == "" && o.UserJWT == nil && len(o.Servers) > 0 {
		if u, err := url.Parse(o.Servers[0]); err == nil && u.User != nil {
			if _, hasPassword := u.User.Password(); hasPassword { // else it is a token
				user = u.User.Username()
			}
		}
	}
	if o.InboxPrefix != "" || user == "" {
		return nil
	}
	return nats.CustomInboxPrefix(InboxPrefix(user))(o)
}
