-- How the server writes a name: in quotes if it is a word of SQL. No table, no locks.
select quote_ident(%(name)s)
