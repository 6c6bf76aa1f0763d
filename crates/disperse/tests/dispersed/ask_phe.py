"""The other half of phe.rs: reads p, q and ciphertexts from standard input, a line each, in hexadecimal, and answers in lines.

First what python-paillier reads in each ciphertext, then ciphertexts of its own of the numbers that are arguments, then the first
ciphertext that was read added to each of them.
"""

import sys

from phe import EncryptedNumber, PaillierPrivateKey, PaillierPublicKey

p, q, *ciphertexts = (int(line, 16) for line in sys.stdin)
public = PaillierPublicKey(p * q)
private = PaillierPrivateKey(public, p, q)
read = [EncryptedNumber(public, ciphertext) for ciphertext in ciphertexts]
for number in read:
    print(private.decrypt(number))
own = [public.encrypt(int(number)) for number in sys.argv[1:]]
for number in own + [read[0] + number for number in own]:
    print(f"{number.ciphertext():x}")
