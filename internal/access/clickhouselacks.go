package access

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// SingleGrant is one right that an account must have in a database.
type SingleGrant struct {
	TableGrant
	// Ask is what the server is asked for by CHECK GRANT. It is another table's right where the account may not have it on all tables.
	Ask string
}

// String is the right as GRANT takes it.
func (r SingleGrant) String() string { return r.Rights + " ON " + r.On }

// Rights are what the account must have in a database, one at a time.
func (u *ClickHouseUser) Rights(database string) (all []SingleGrant) {
	for _, g := range u.Grants {
		for right := range strings.SplitSeq(g.Rights, ", ") {
			ask := g
			if slices.ContainsFunc(u.Revokes, func(r TableGrant) bool { return r.Rights == right && g.On == tablesOf }) {
				ask.On = placeholder + "." + schemas.ViewShards // which all read: that of all tables is revoked in part
			}
			asked := ask.in([]string{database})
			for i, on := range g.in([]string{database}) {
				all = append(all, SingleGrant{TableGrant{right, on}, right + " ON " + asked[i]})
			}
		}
	}
	return all
}

// maxLacked is how many of the rights that an account lacks are found: who lacks more is another account, and takes all of them.
const maxLacked = 10

// Lacks lists which of its rights in a database the account does not have, maxLacked and a word that there may be more at most. has
// says whether one has all of some, as CHECK GRANT takes them. It is asked once where none is missing, and otherwise for halves of
// those that are not had together.
func (u *ClickHouseUser) Lacks(database string, has func(rights string) (bool, error)) (missing []string, err error) {
	missing, err = lackedOf(nil, u.Rights(database), has)
	if len(missing) == maxLacked {
		missing = append(missing, "perhaps more")
	}
	return missing, err
}

// lackedOf adds to what is missing already.
func lackedOf(missing []string, all []SingleGrant, has func(rights string) (bool, error)) ([]string, error) {
	if len(missing) == maxLacked {
		return missing, nil
	}
	asks := make([]string, len(all))
	for i, r := range all {
		asks[i] = r.Ask
	}
	if ok, err := has(strings.Join(asks, ", ")); ok || err != nil {
		return missing, err
	}
	if len(all) == 1 {
		return append(missing, all[0].String()), nil
	}
	missing, err := lackedOf(missing, all[:len(all)/2], has)
	if err != nil {
		return missing, err
	}
	return lackedOf(missing, all[len(all)/2:], has)
}

// Lacking says that an account lacks rights of this one's in a database, and what to do about it: a part says so in its log and its
// readiness, and doctor, in these words.
func (u *ClickHouseUser) Lacking(account, database string, rights []string) (found, do string) {
	if u == nil { // of another version
		return account + " lacks " + strings.Join(rights, "; "), "see the log of the process that says so"
	}
	config := "almanac config clickhouse"
	if database != schemas.DefaultDatabase {
		config += " --database " + database
	}
	var revoked string
	for _, r := range u.Revokes { // a grant on all tables gives back what is taken from it
		if slices.Contains(rights, SingleGrant{TableGrant: TableGrant{r.Rights, database + ".*"}}.String()) {
			revoked += fmt.Sprintf(" and then revoke %s ON %s from it", r.Rights, strings.Join(r.in([]string{database}), ", "))
		}
	}
	return fmt.Sprintf("%s may not do what the account %s needs: it lacks %s", account, u.Name, strings.Join(rights, "; ")),
		fmt.Sprintf("grant %s what it lacks%s, or take the account %s of `%s`, which has all of it", account, revoked, u.Name, config)
}

// ClickHouseWorkOf is the account whose work a connection's has: its namesake, else the operator.
func ClickHouseWorkOf(name string) *ClickHouseUser {
	return cmp.Or(ClickHouseUserOf(name), ClickHouseUserOf(UserOperator))
}
