{{if .OfCustomer}}SELECT * FROM ({{end}}
{{- if .Within}}{{template "usage/causes_within" .}}{{else if .Billed}}{{template "usage/causes_billed" .}}{{else}}{{template "usage/causes_once" .}}{{end}}
-- Outside of what is grouped: a copy may name another customer than the diff that counts.
{{- if .OfCustomer}}) WHERE user_id = {user_id:String}{{end}}
