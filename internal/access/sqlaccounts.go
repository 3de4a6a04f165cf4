package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// maxSQLTopics bounds the topics of one token's SQL: each is eight grants of its account.
const maxSQLTopics = 100

// sqlAccountPrefix begins the names of accounts that ask SQL of some topics.
const sqlAccountPrefix = "sql_"

// SQLTopics are the topics that a principal may ask SQL of, sorted; everything says that it may ask of all.
func (p *Principal) SQLTopics() (topics []string, everything bool) {
	if p.May(SQL, "") == nil {
		return nil, true
	}
	for i := range p.Grants {
		if p.Grants[i].Role == RoleSQL {
			topics = append(topics, p.Grants[i].Topics...)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics), false
}

// SQLAccount is the account of ClickHouse that asks SQL of some topics: it reads their tables and views, and nothing else. Its
// name is made of the topics, so that tokens with the same share it, and one whose topics change never asks by the old one.
func SQLAccount(topics []string) ClickHouseUser {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	sum := sha256.Sum256([]byte(strings.Join(topics, ",")))
	u := ClickHouseUser{
		Name: sqlAccountPrefix + hex.EncodeToString(sum[:8]), Short: "SQL of " + strings.Join(topics, ", "), Profile: profileReader,
	}
	for _, topic := range topics {
		for _, table := range tablesOfTopic(topic) {
			u.Grants = append(u.Grants, TableGrant{"SELECT", fmt.Sprintf("%s.`%s`", placeholder, table)})
		}
	}
	return u
}

// tablesOfTopic are the tables and views that a topic has, of whatever kind it is.
func tablesOfTopic(topic string) []string {
	all := append([]string{topic}, schemas.TopicViews(topic)...)
	for _, derived := range []string{schemas.DerivedRepeats, schemas.DerivedSums, schemas.DerivedSeries} {
		all = append(all, schemas.DerivedTable(topic, derived))
	}
	return all
}

// SQLAccounts are the accounts that tokens ask SQL by, each once, by name.
func SQLAccounts(tokens []Token) []ClickHouseUser {
	var all []ClickHouseUser
	for i := range tokens {
		p := Principal{Grants: tokens[i].Grants}
		topics, everything := p.SQLTopics()
		if everything || len(topics) == 0 {
			continue
		}
		if u := SQLAccount(topics); !slices.ContainsFunc(all, func(o ClickHouseUser) bool { return o.Name == u.Name }) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b ClickHouseUser) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// SQLPassword is the password of such an account. It is made of the reader's, which may read more than any of them: who writes
// the accounts down and who asks by them need no other secret.
func SQLPassword(reader, account string) string {
	mac := hmac.New(sha256.New, []byte(reader))
	_, _ = mac.Write([]byte(account)) // a hash does not fail
	return hex.EncodeToString(mac.Sum(nil))
}
