/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asserts on JSON fail where the JSON is another. */
#include "report/json.h"
#include "support/json.h"
#include "support/test.h"

TEST(json_that_lacks_a_part_is_seen)
{
    static const struct {
        const char *wanted;
        bool has;
    } rows[] = {
        {"{}", true},
        {"{\"a\": 1}", true},
        {"{\"a\": 1.0}", true},
        {"{\"a\": 2}", false},
        {"{\"a\": 1.5}", false},
        {"{\"a\": \"1\"}", false},
        {"{\"b\": [2.5, {}]}", true},
        {"{\"b\": [2.5]}", false},
        {"{\"b\": [2, {}]}", false},
        {"{\"b\": [{}, {}]}", true},
        {"{\"b\": [2.5, {\"c\": null}]}", true},
        {"{\"b\": [2.5, {\"d\": null}]}", false},
        {"{\"e\": null}", false},
        {"[]", false},
        {"1", false},
    };
    ASYM_AUTO_JSON json_t *json = json_of("{\"a\": 1, \"b\": [2.5, {\"c\": null}]}");
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_AUTO_JSON json_t *wanted = json_loads(rows[i].wanted, JSON_DECODE_ANY, NULL);
        if (json_has(json, wanted) != rows[i].has)
            fail_msg("%s", rows[i].wanted);
    }
    assert_true(json_is_null(json_at(json, "b.1.c")));
    assert_json(json_at(json, "b.1"), "{'%s': null}", "c");
}

TEST_MAIN
