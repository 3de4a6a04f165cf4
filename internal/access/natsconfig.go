package access

import (
	"fmt"
	"strings"
)

// NATSPasswordKey is the variable of the environment that NATSConfig takes a user's password from.
func NATSPasswordKey(user string) string {
	return "ALMANAC_NATS_" + strings.ToUpper(user) + "_PASSWORD"
}

// NATSConfig is the block of a NATS server's configuration that makes the users, but for the one without credentials. Their
// passwords are in the server's environment.
func NATSConfig() string {
	var b strings.Builder
	b.WriteString("# The users of Almanac, as `almanac config nats` writes them. The server takes each password from its\n# environment: ALMANAC_NATS_ROUTER_PASSWORD is the router's.\nauthorization {\n  users = [\n")
	users := NATSUsers()
	for i := range users {
		u := &users[i]
		if u.Name == UserLocal {
			continue
		}
		allow, deny := u.Subscribes()
		fmt.Fprintf(&b, "    # %s\n    {\n      user: %s\n      password: $%s\n      permissions {\n", u.Short, u.Name, NATSPasswordKey(u.Name))
		writeRights(&b, "publish", u.Publish, u.Deny)
		writeRights(&b, "subscribe", allow, deny)
		if u.Answers {
			b.WriteString("        allow_responses: true\n")
		}
		b.WriteString("      }\n    }\n")
	}
	b.WriteString("  ]\n}\n")
	return b.String()
}

func writeRights(b *strings.Builder, name string, allow, deny []string) {
	fmt.Fprintf(b, "        %s {\n", name)
	for _, l := range []struct {
		word     string
		subjects []string
	}{{"allow", allow}, {"deny", deny}} {
		if len(l.subjects) == 0 {
			continue
		}
		fmt.Fprintf(b, "          %s: [\n", l.word)
		for _, s := range l.subjects {
			fmt.Fprintf(b, "            %q\n", s)
		}
		b.WriteString("          ]\n")
	}
	b.WriteString("        }\n")
}
