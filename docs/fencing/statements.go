package fencing

// The statements are those of README.md to the letter; a test compares them. They are the same for SQLite and
// PostgreSQL.

// A table whose rows carry their token. BIGINT, since a token has 51 bits today.
const createStock = `CREATE TABLE stock (
    id       TEXT PRIMARY KEY,
    quantity BIGINT NOT NULL,
    token    BIGINT NOT NULL DEFAULT 0
)`

// updateRow changes a row, unless a newer holder has.
const updateRow = `UPDATE stock SET quantity = $1, token = $2 WHERE id = $3 AND token <= $2`

// upsertRow does the same, and makes the row if there is none.
const upsertRow = `INSERT INTO stock (id, quantity, token) VALUES ($3, $1, $2)
ON CONFLICT (id) DO UPDATE SET quantity = excluded.quantity, token = excluded.token
WHERE stock.token <= excluded.token`

// claimRow notes the holder's token and reads, in one.
const claimRow = `UPDATE stock SET token = $1 WHERE id = $2 AND token <= $1 RETURNING quantity`

// A table of fences, one row for each lock.
const createFences = `CREATE TABLE fences (
    name  TEXT PRIMARY KEY,
    token BIGINT NOT NULL
)`

// raiseFence notes the token of a lock's holder, unless a newer one has been there.
const raiseFence = `INSERT INTO fences (name, token) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET token = excluded.token
WHERE fences.token <= excluded.token`

// What is written behind a fence needs no token. Here the orders have one, to see afterwards who was there.
const createOrders = `CREATE TABLE orders (
    stock_id TEXT   NOT NULL,
    item     BIGINT NOT NULL,
    token    BIGINT NOT NULL
)`

const (
	readQuantity  = `SELECT quantity FROM stock WHERE id = $1`
	writeQuantity = `UPDATE stock SET quantity = $1 WHERE id = $2`
	insertOrder   = `INSERT INTO orders (stock_id, item, token) VALUES ($1, $2, $3)`
)
