package kinds

// Columns of kind audit. The base column type says which event of a request it is, user_id
// who acted, service where.
const (
	ColRequestID    = "request_id"
	ColScope        = "scope" // of the resource: a project, an account, a tenant
	ColMethod       = "method"
	ColResourceType = "resource_type"
	ColResource     = "resource" // what was read or changed
	ColCategory     = "category"
	ColBefore       = "before" // the resource, JSON
	ColAfter        = "after"
	ColBeforeBytes  = "before_bytes" // how long the body was, also where it was cut
	ColAfterBytes   = "after_bytes"
)

// TypeChange is the type of an event that says a resource changes. Other types are the
// activity of a request, such as request, response, message and exit.
const TypeChange = "change"

// States of a change. One that is recorded after the fact does not have any.
const (
	StatePreCommitted = "pre_committed" // it is about to be made
	StateCommitted    = "committed"
	StateRolledBack   = "rolled_back"
)

// CategoryRead is the category of what was only read.
const CategoryRead = "read"

// Categories are what an event of kind audit may be filed under.
var Categories = []string{
	"creation", "deletion", "spec_update", "state_update", "meta_update",
	"operation", "internal", "rejected", "client_error", "server_error", CategoryRead,
}

// audits say who did what to which resource. An event that comes again counts once.
var audits = Spec{
	Kind: Audit, Short: "who changed what: requests, and changes before and after their commit",
	Fields: []Field{
		{Name: ColRequestID, Type: TypeString},
		{Name: ColScope, Type: TypeLowCardinality},
		{Name: ColMethod, Type: TypeLowCardinality},
		{Name: ColResourceType, Type: TypeLowCardinality},
		{Name: ColResource, Type: TypeString},
		{Name: ColCategory, Type: TypeLowCardinality},
		{Name: ColState, Type: TypeLowCardinality},
		{Name: ColBefore, Type: TypeJSON},
		{Name: ColAfter, Type: TypeJSON},
		{Name: ColBeforeBytes, Type: TypeInt64},
		{Name: ColAfterBytes, Type: TypeInt64},
	},
	Rules: []Rule{
		{Column: ColType, NotEmpty: true},
		{Column: ColRequestID, Present: true, NotEmpty: true},
		{Column: ColScope, Present: true, NotEmpty: true},
		{Column: ColState, OneOf: []string{"", StatePreCommitted, StateCommitted, StateRolledBack}},
		{Column: ColCategory, OneOf: append([]string{""}, Categories...)},
	},
	LaneBy: []string{ColRequestID},
	Rotate: defaultRotation,
	Once:   []string{ColRequestID, ColResource, ColType, ColState, ColTs},
	Wins:   First,
	Waits:  true,
	Seals:  true,
	Bodies: []Body{{Column: ColBefore, Bytes: ColBeforeBytes}, {Column: ColAfter, Bytes: ColAfterBytes}},
	Table:  "audit.sql",
	Sort:   []string{ColTs, ColID},
}
