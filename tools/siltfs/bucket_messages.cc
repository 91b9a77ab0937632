// The messages about buckets.
#include <array>

#include "tools/siltfs/message_table.h"

namespace siltfs {
namespace {

constexpr std::string_view kCredentials = "check the credentials";
constexpr std::string_view kAgain = "try again later";

constexpr std::array kRows = {
    MessageRow{"S1601", "the options of a bucket need --bucket",
               "An option of a bucket was given, but no bucket.", "add --bucket s3://NAME/PREFIX"},
    MessageRow{"S1602", "the cache of a bucket needs at least",
               "The size of the cache is too small.", "give a larger --cache"},
    MessageRow{"S1603", "of the bucket has a line break", "An option has a line break.",
               "leave it out", true},
    MessageRow{"S1604", "the prefix of a bucket's address must be",
               "The prefix has characters that keys cannot have.", "choose another prefix", true},
    MessageRow{"S1605", "the region of the bucket has only", "The region is malformed.",
               "see the name of the region in the service's documentation", true},
    MessageRow{"S1606", "a bucket cannot be part of the host if",
               "The endpoint is an IPv6 address.", "use a host name", true},
    MessageRow{"S1607", "; choose another prefix, or remove what is there",
               "Another store or other objects have the prefix.",
               "choose another prefix, or remove what is there"},
    MessageRow{"S1608", "another mkfs has claimed the bucket", "Two mkfs ran at the same time.",
               "choose another prefix", true},
    MessageRow{"S1609", "could not be removed (*), so remove it by hand",
               "A failed mkfs has left its object in the bucket.",
               "remove the object that the message names"},
    MessageRow{"S1610", "the bucket does not have the store (",
               "The address or the endpoint is wrong, or the bucket was emptied.",
               "correct the address with siltfs tune --bucket"},
    MessageRow{"S1611", "the bucket belongs to the store *, not to",
               "The address is that of another store.",
               "correct the address with siltfs tune --bucket"},
    MessageRow{"S1612", "the segments of this store are in a bucket, and the file",
               "The file STORE/bucket is missing.", "write it with siltfs tune --bucket"},
    MessageRow{"S1613", "are in its directory", "The store was made without --bucket.",
               "make another store with --bucket, and copy the files into it with siltfs import"},
    MessageRow{"S1614", "is no address of a bucket", "The address is malformed.",
               "write s3://NAME/PREFIX"},
    MessageRow{"S1615", "an endpoint begins with", "The address of the service is malformed.",
               "write it as in https://minio.example:9000"},
    MessageRow{"S1621", "there is no bucket \"", "The bucket does not exist, or is elsewhere.",
               "create it, or check the address"},
    MessageRow{"S1622", "there are no credentials for the bucket",
               "Neither the environment nor a file has credentials.",
               "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use --bucket-credentials"},
    MessageRow{"S1623", "the access key id and the secret access key must both",
               "One half of the credentials is missing.", kCredentials, true},
    MessageRow{"S1624", "the credentials contain a character", "The credentials are malformed.",
               kCredentials, true},
    MessageRow{"S1625", "has no section [", "The file has no credentials of this profile.",
               "choose another profile with AWS_PROFILE"},
    MessageRow{"S1626", "and begins no section", "The file of credentials is malformed.",
               "write it like ~/.aws/credentials"},
    MessageRow{"S1627", "holds secrets but other users have access", "The file is not private.",
               "run the command that the message names"},
    MessageRow{"S1628", "holds secrets but belongs to user", "The file is another user's.",
               "make a file of your own", true},
    MessageRow{"S1629", "has more than", "The file is too large for credentials.",
               "name the right file", true},
    MessageRow{"S1641", "no usable answer from * within",
               "The service is down, slow or overloaded.", kAgain, true},
    MessageRow{"S1642", "the call was interrupted", "The command is ending.", "run it again", true},
    MessageRow{"S1643", "the bucket is full", "The service has no room.",
               "make room in the bucket, or run siltfs gc", true},
    MessageRow{"S1644", "the cache is full", "Segments wait for their upload.",
               "see with siltfs stat why the bucket does not take them", true},
    MessageRow{"S1645", "the bucket does not have all segments yet", "Uploads take their time.",
               kAgain, true},
    MessageRow{"S1646", "another writer has the bucket now", "Two machines use the bucket.",
               "unmount the store on one of them", true},
    MessageRow{"S1647", "the bucket has another content under this key",
               "Two machines use the bucket.", "unmount the store on one of them", true},
    MessageRow{"S1648", "it is unknown whether the object was put", "An answer was lost.", kAgain,
               true},
    MessageRow{"S1649", "has become shorter while it was put", "A local file was changed.",
               "run siltfs fsck on the store's directory", true},
    MessageRow{"S1650", "was changed, or read differently, while", "A local file was changed.",
               "run siltfs fsck on the store's directory", true},
    MessageRow{"S1651", "the segment exists, with another content",
               "The bucket has other segments.", "run siltfs fsck on the store's directory", true},
    MessageRow{"S1652", "the bucket does not answer", "The service is down, or cannot be reached.",
               kAgain, true},
    MessageRow{"S1653", "so it cannot keep a store",
               "The service does not keep the promises that a store needs.", "use another service",
               true},
};

}  // namespace

std::span<const MessageRow> BucketMessages() { return kRows; }

}  // namespace siltfs
