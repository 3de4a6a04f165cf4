package operations

import (
	"slices"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/schemas"
)

// Right is what a request needs.
type Right struct {
	Action access.Action
	// Of says of which topics the right must be.
	Of Scope
}

// Scope says which topics a right must be of.
type Scope int

const (
	// OfNamed is the topic of the path, or those that the parameter topic names; all, where it names none.
	OfNamed Scope = iota
	// OfAll topics: what the request is about is known only once it is under way.
	OfAll
	// OfSome: some topic. The operation itself asks for those of its body, or leaves out what may not be seen.
	OfSome
)

// DefaultTopic is the topic of a request that names none, where the parameter has one; empty: it is of all.
func (o *Operation) DefaultTopic() string {
	if slices.ContainsFunc(o.Params, func(p Param) bool { return p.Name == timerTopic.Name && p.Help == timerTopic.Help }) {
		return schemas.DefaultTimerTopic
	}
	return ""
}

// Right returns what a request for the operation needs.
func (o *Operation) Right() Right { return rights[o] }

// rights are those of all operations. A test says which is missing.
var rights = map[*Operation]Right{
	&Topics:          {access.Read, OfSome},
	&Topic:           {access.Read, OfNamed},
	&Shards:          {access.Read, OfNamed},
	&Lag:             {access.Read, OfNamed},
	&Events:          {access.Read, OfNamed},
	&SendEvents:      {access.Send, OfNamed},
	&Event:           {access.Read, OfNamed},
	&Around:          {access.Read, OfNamed},
	&Tail:            {access.Read, OfNamed},
	&Count:           {access.Read, OfNamed},
	&Histogram:       {access.Read, OfNamed},
	&Facets:          {access.Read, OfNamed},
	&Fields:          {access.Read, OfNamed},
	&Values:          {access.Read, OfNamed},
	&Series:          {access.Read, OfNamed},
	&Align:           {access.Read, OfNamed},
	&Usage:           {access.Read, OfNamed},
	&UsageDiffs:      {access.Read, OfNamed},
	&Trail:           {access.Read, OfNamed},
	&SQL:             {access.SQL, OfAll},
	&ClickHouse:      {access.SQL, OfAll},
	&ClickHousePost:  {access.SQL, OfAll},
	&ClickHousePing:  {access.Open, OfAll},
	&Proof:           {access.Read, OfNamed},
	&Verify:          {access.Operate, OfNamed},
	&Erasures:        {access.Operate, OfNamed},
	&Erase:           {access.Operate, OfSome},
	&ShowErasure:     {access.Operate, OfAll},
	&ResumeErasure:   {access.Operate, OfAll},
	&Replay:          {access.Operate, OfSome},
	&DeadLetters:     {access.Operate, OfNamed},
	&DeadLetter:      {access.Operate, OfAll},
	&RetryLetters:    {access.Operate, OfAll},
	&DropLetters:     {access.Operate, OfAll},
	&Jobs:            {access.Operate, OfNamed},
	&Job:             {access.Operate, OfAll},
	&CancelJob:       {access.Operate, OfAll},
	&Documents:       {access.Read, OfNamed},
	&CreateDocument:  {access.Change, OfNamed},
	&BatchDocuments:  {access.Change, OfNamed},
	&LoadDocuments:   {access.Read, OfNamed},
	&Document:        {access.Read, OfNamed},
	&PutDocument:     {access.Change, OfNamed},
	&RemoveDocument:  {access.Change, OfNamed},
	&DocumentHistory: {access.Read, OfNamed},
	&DocumentLock:    {access.Read, OfNamed},
	&LockDocument:    {access.Change, OfNamed},
	&UnlockDocument:  {access.Change, OfNamed},
	&TimerGroups:     {access.Read, OfNamed},
	&Timers:          {access.Read, OfNamed},
	&CreateTimer:     {access.Change, OfNamed},
	&TimerGroup:      {access.Read, OfNamed},
	&SetTimerGroup:   {access.Operate, OfNamed},
	&Timer:           {access.Read, OfNamed},
	&UpdateTimer:     {access.Change, OfNamed},
	&DeleteTimer:     {access.Change, OfNamed},
	&FireTimer:       {access.Change, OfNamed},
	&RetryTimer:      {access.Change, OfNamed},
	&TimerHistory:    {access.Read, OfNamed},
	&Metrics:         {access.Metrics, OfAll},
	&Specification:   {access.Open, OfAll},
}
