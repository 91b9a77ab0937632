// The prices of a bucket: their text, and the estimate from counted requests.
#include "fs/bucket/bucket_prices.h"

#include <string>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

TEST_CASE("prices are read as they were written") {
  for (const BucketPrices& prices :
       {BucketPrices(),
        BucketPrices{
            .put = 0, .get = 0.00036, .storage = 0.00099, .egress = 123456.789, .currency = "EUR"},
        BucketPrices{.put = 1e-9, .get = 0.1 + 0.2, .storage = 1e6, .egress = 5e-324}}) {
    const std::string text = FormatPrices(prices);
    INFO(text);
    CHECK(text.find("e-") == std::string::npos);
    const auto read = ParsePrices(text, BucketPrices{.put = 7, .currency = "X"});
    REQUIRE_OK(read);
    CHECK(*read == prices);
  }
  CHECK(FormatPrices(BucketPrices()) ==
        "put=0.005,get=0.0004,storage=0.023,egress=0.09,currency=USD");
}

TEST_CASE("prices that are not named stay") {
  const BucketPrices before{.put = 1, .get = 2, .storage = 3, .egress = 4, .currency = "CHF"};
  const auto read = ParsePrices("egress=0,put=9", before);
  REQUIRE_OK(read);
  CHECK(*read == BucketPrices{.put = 9, .get = 2, .storage = 3, .egress = 0, .currency = "CHF"});
}

TEST_CASE("texts that are no prices are refused") {
  for (const char* text : {"",
                           "put",
                           "put=",
                           "put=x",
                           "put=-1",
                           "put=nan",
                           "put=inf",
                           "put=1e3",
                           "put=0.1.2",
                           "put= 1",
                           "put=1000001",
                           "Put=1",
                           "delete=1",
                           "put=1,",
                           ",put=1",
                           "put=1;get=2",
                           "currency=",
                           "currency=E R",
                           "currency=TOOLONGNAME",
                           "currency=\n",
                           "currency=$"}) {
    INFO(text);
    CHECK(ParsePrices(text, BucketPrices()).status().Is(StatusCode::kInvalidArgument));
  }
}

TEST_CASE("an estimate counts each request, and what is stored and read") {
  const BucketPrices prices{.put = 5, .get = 0.5, .storage = 20, .egress = 90};
  ObjectStoreCounters requests;
  requests.puts = 3000;
  requests.lists = 1000;
  requests.gets = 7000;
  requests.stats = 1000;
  requests.removes = 1'000'000;             // free
  requests.sent_bytes = uint64_t{1} << 40;  // free
  requests.received_bytes = 2'000'000'000;
  const BucketCost cost = EstimateCost(prices, requests, 10'000'000'000'000);
  CHECK(cost.storage_per_month == Approx(10'000 * 20));
  CHECK(cost.requests == Approx(4 * 5 + 8 * 0.5));
  CHECK(cost.egress == Approx(2 * 90));
  const BucketCost none = EstimateCost(prices, {}, 0);
  CHECK(none.storage_per_month + none.requests + none.egress == 0);
}

}  // namespace
}  // namespace siltfs
