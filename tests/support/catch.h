// Catch2 under one name: version 2 is a single header, version 3 (Debian 13) is not.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
