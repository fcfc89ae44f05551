// The string functions that the shim calls, and that compilers call for it. Imported from libc, each would
// be searched for in every process, and chosen for the processor at hand: more than the shim ever copies.

#include <string.h>

// Sanitizers bring their own, which check what they are given.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  unsigned char* out = (unsigned char*)to;
  const unsigned char* in = (const unsigned char*)from;
  while (size-- > 0) *out++ = *in++;
  return to;
}

void* memset(void* to, int value, size_t size) {
  unsigned char* out = (unsigned char*)to;
  while (size-- > 0) *out++ = (unsigned char)value;
  return to;
}

int memcmp(const void* one, const void* other, size_t size) {
  const unsigned char* a = (const unsigned char*)one;
  const unsigned char* b = (const unsigned char*)other;
  for (; size > 0; --size, ++a, ++b) {
    if (*a != *b) return *a - *b;
  }
  return 0;
}

void* memchr(const void* where, int value, size_t size) {
  const unsigned char* at = (const unsigned char*)where;
  for (; size > 0; --size, ++at) {
    if (*at == (unsigned char)value) return (unsigned char*)at;
  }
  return NULL;
}

size_t strlen(const char* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return length;
}

int strcmp(const char* one, const char* other) {
  while (*one != 0 && *one == *other) ++one, ++other;
  return (unsigned char)*one - (unsigned char)*other;
}

int strncmp(const char* one, const char* other, size_t size) {
  while (size > 0 && *one != 0 && *one == *other) ++one, ++other, --size;
  return size == 0 ? 0 : (unsigned char)*one - (unsigned char)*other;
}

char* strchr(const char* text, int wanted) {
  while (*text != (char)wanted && *text != 0) ++text;
  return *text == (char)wanted ? (char*)text : NULL;
}

char* strrchr(const char* text, int wanted) {
  const char* found = NULL;
  do {
    if (*text == (char)wanted) found = text;
  } while (*text++ != 0);
  return (char*)found;
}

#endif
