package access

import (
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// NATSPasswordKey is the variable of the environment that NATSConfig takes a user's password from.
func NATSPasswordKey(user string) string {
	return "ALMANAC_NATS_" + strings.ToUpper(user) + "_PASSWORD"
}

// NATSAccount is the account of the streams in NATSAccounts. Users that are apart have one each, named as they are.
const NATSAccount = "almanac"

// NATSConfig is the block of a NATS server's configuration that makes the accounts and their users, but for the one without
// credentials. Their passwords are in the server's environment.
func NATSConfig() string {
	return "# The users of Almanac, as `almanac config nats` writes them. The server takes each password from its\n" +
		"# environment: ALMANAC_NATS_ROUTER_PASSWORD is the router's.\n" +
		NATSAccounts(0, func(user string) string {
			if user == UserLocal {
				return ""
			}
			return "$" + NATSPasswordKey(user)
		})
}

// NATSAccounts is the block for those users that have a password, which password writes as the configuration has it. Clients of
// an account that is apart have so many connections; 0: as many as the server gives.
func NATSAccounts(connections int, password func(user string) string) string {
	var beside, apart []NATSUser
	for _, u := range NATSUsers() {
		switch {
		case password(u.Name) == "":
		case u.Apart:
			apart = append(apart, u)
		default:
			beside = append(beside, u)
		}
	}
	var b strings.Builder
	b.WriteString("accounts {\n  # The account of the streams.\n  " + NATSAccount + " {\n    jetstream: enabled\n    exports: [\n")
	for i := range apart {
		writeShared(&b, &apart[i], func(kind, subject string) string {
			return fmt.Sprintf("{%s: %q, accounts: [%s]}", kind, subject, apart[i].Name)
		})
	}
	b.WriteString("    ]\n")
	writeUsers(&b, beside, password)
	b.WriteString("  }\n")
	for i := range apart {
		b.WriteString("  # An answer leads nowhere but to who asked: NATS asks for no right to its subject.\n  " + apart[i].Name + " {\n    imports: [\n")
		writeShared(&b, &apart[i], func(kind, subject string) string {
			return fmt.Sprintf("{%s: {account: %s, subject: %q}}", kind, NATSAccount, subject)
		})
		b.WriteString("    ]\n")
		if connections > 0 {
			fmt.Fprintf(&b, "    limits: {max_connections: %d}\n", connections)
		}
		writeUsers(&b, apart[i:i+1], password)
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// shadow is a request that each account without streams of its own must have from elsewhere, or the server answers all of JetStream's
// requests there, beside the account of the streams, that there is none. The user may not make it.
const shadow = apiPrefix + "INFO"

// writeShared writes what the account of the streams lets into that of a user, each as entry has it.
func writeShared(b *strings.Builder, u *NATSUser, entry func(kind, subject string) string) {
	for _, s := range append([]string{shadow}, u.Publish...) {
		if s != schemas.SubjectOwnRights { // the server answers it in every account
			b.WriteString("      " + entry("service", s) + "\n")
		}
	}
	for _, s := range u.Hears {
		b.WriteString("      " + entry("stream", s) + "\n")
	}
}

func writeUsers(b *strings.Builder, users []NATSUser, password func(string) string) {
	b.WriteString("    users: [\n")
	for i := range users {
		u := &users[i]
		allow, deny := u.Subscribes()
		fmt.Fprintf(b, "      # %s\n      {\n        user: %s\n        password: %s\n        permissions {\n", u.Short, u.Name, password(u.Name))
		writeRights(b, "publish", u.Publish, u.Deny)
		writeRights(b, "subscribe", allow, deny)
		if u.Answers {
			b.WriteString("          allow_responses: true\n")
		}
		b.WriteString("        }\n      }\n")
	}
	b.WriteString("    ]\n")
}

func writeRights(b *strings.Builder, name string, allow, deny []string) {
	fmt.Fprintf(b, "          %s {\n", name)
	for _, l := range []struct {
		word     string
		subjects []string
	}{{"allow", allow}, {"deny", deny}} {
		if len(l.subjects) == 0 {
			continue
		}
		fmt.Fprintf(b, "            %s: [\n", l.word)
		for _, s := range l.subjects {
			fmt.Fprintf(b, "              %q\n", s)
		}
		b.WriteString("            ]\n")
	}
	b.WriteString("          }\n")
}
