// Asks by ClickHouse's own client what is stored, until it is there.
import { createClient } from '@clickhouse/client'
const client = createClient({ url: process.env.HTTP, pathname: '/clickhouse' })
for (let i = 0; ; i++) {
  const answer = await client.query({ query: `SELECT message, count() AS n FROM app WHERE message = {m: String} GROUP BY message`, query_params: { m: 'from clickhouse-client' }, format: 'JSONEachRow' })
  const rows = await answer.json()
  if (rows.length === 1 && Number(rows[0].n) === 1) break
  if (i > 600) throw new Error('not stored: ' + JSON.stringify(rows))
  await new Promise((r) => setTimeout(r, 100))
}
await client.insert({ table: 'app', values: [{ message: 'written around Almanac' }], format: 'JSONEachRow' }).then(
  () => { throw new Error('an account that only reads has written') }, () => {})
await client.close()
