CREATE TABLE item (n integer PRIMARY KEY, word text, filler text);
INSERT INTO item SELECT n, md5(n::text), repeat(md5((n * 7)::text), 5) FROM generate_series(1, 20000) n;
SELECT count(*), min(word), max(word) FROM item;
SELECT word FROM item WHERE n % 2 = 0 ORDER BY n;
COPY (SELECT * FROM item ORDER BY n) TO STDOUT;
\copy (SELECT n, filler FROM item ORDER BY word) TO 'copied'
CREATE TABLE again (n integer, filler text);
\copy again FROM 'copied'
SELECT count(*), md5(string_agg(filler, '' ORDER BY n)) FROM again;
BEGIN;
DELETE FROM item WHERE n > 10000;
SELECT count(*) FROM item;
ROLLBACK;
SELECT count(*) FROM item;
SELECT repeat('x', 3000000);
