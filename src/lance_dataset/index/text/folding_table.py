"""Table of the folding of characters to ASCII: letters without their marks, and signs by similar ones.

It is what the reference's filter does to each character of Unicode 17, found by indexing every one of them.
"""

from __future__ import annotations

from typing import Final

__all__ = ["SERIES", "SINGLE"]

#: Ranges of characters, by their hexadecimal numbers, whose ASCII characters follow each other from the one given.
SERIES: Final = """
G=1d33-1d3a 4=2074-2079 0=2080-2089 1=2460-2468 A=24b6-24cf a=24d0-24e9 1=32c0-32c8 0=3358-3361 1=33e0-33e8
!=ff01-ff5e A=1ccd6-1ccef 0=1ccf0-1ccf9 A=1d400-1d419 a=1d41a-1d433 A=1d434-1d44d a=1d44e-1d454 i=1d456-1d467
A=1d468-1d481 a=1d482-1d49b S=1d4ae-1d4b5 h=1d4bd-1d4c3 p=1d4c5-1d4cf A=1d4d0-1d4e9 a=1d4ea-1d503 J=1d50d-1d514
S=1d516-1d51c a=1d51e-1d537 S=1d54a-1d550 a=1d552-1d56b A=1d56c-1d585 a=1d586-1d59f A=1d5a0-1d5b9 a=1d5ba-1d5d3
A=1d5d4-1d5ed a=1d5ee-1d607 A=1d608-1d621 a=1d622-1d63b A=1d63c-1d655 a=1d656-1d66f A=1d670-1d689 a=1d68a-1d6a3
0=1d7ce-1d7d7 0=1d7d8-1d7e1 0=1d7e2-1d7eb 0=1d7ec-1d7f5 0=1d7f6-1d7ff A=1f130-1f149 0=1fbf0-1fbf9
"""

#: Other characters by their replacement, with ␣ for a space; ``/2`` stands for every second character of a range.
SINGLE: Final = r"""
␣=a0,a8,af,b4,b8,2d8-2dd,37a,384,385,1fbd,1fbf-1fc1,1fcd-1fcf,1fdd-1fdf,1fed,1fee,1ffd,1ffe,2000-200a,2017,202f
␣=203e,205f,3000,309b,309c,fc5e-fc63,fdfb,fe49-fe4c,fe70-fe7e/2,ffe3
␣␣␣=fdfa !=fe15,fe57 !!=203c !?=2049 #=fe5f $=fe69 %=fe6a &=fe60 (=207d,208d,fe35,fe59 ()=3200-321e,3220-3243 (1)=2474
(10)=247d (11)=247e (12)=247f (13)=2480 (14)=2481 (15)=2482 (16)=2483 (17)=2484 (18)=2485 (19)=2486 (2)=2475 (20)=2487
(3)=2476 (4)=2477 (5)=2478 (6)=2479 (7)=247a (8)=247b (9)=247c (A)=1f110 (B)=1f111 (C)=1f112 (D)=1f113 (E)=1f114
(F)=1f115 (G)=1f116 (H)=1f117 (I)=1f118 (J)=1f119 (K)=1f11a (L)=1f11b (M)=1f11c (N)=1f11d (O)=1f11e (P)=1f11f
(Q)=1f120 (R)=1f121 (S)=1f122 (T)=1f123 (U)=1f124 (V)=1f125 (W)=1f126 (X)=1f127 (Y)=1f128 (Z)=1f129 (a)=249c (b)=249d
(c)=249e (d)=249f (e)=24a0 (f)=24a1 (g)=24a2 (h)=24a3 (i)=24a4 (j)=24a5 (k)=24a6 (l)=24a7 (m)=24a8 (n)=24a9 (o)=24aa
(p)=24ab (q)=24ac (r)=24ad (s)=24ae (t)=24af (u)=24b0 (v)=24b1 (w)=24b2 (x)=24b3 (y)=24b4 (z)=24b5
)=207e,208e,fe36,fe5a *=fe61 +=207a,208a,fb29,fe62 ,=fe10,fe50 -=fe63 .=2024,fe52 ..=2025,fe30 ...=2026,fe19
0=2070,24ea 0,=1f101 0.=1f100 03=2189 1=b9,215f 1,=1f102 1.=2488 10=2469,32c9,3362,33e9 10.=2491
11=246a,32ca,3363,33ea 11.=2492 110=2152 12=bd,246b,32cb,3364,33eb 12.=2493 13=2153,246c,3365,33ec 13.=2494
14=bc,246d,3366,33ed 14.=2495 15=2155,246e,3367,33ee 15.=2496 16=2159,246f,3368,33ef 16.=2497 17=2150,2470,3369,33f0
17.=2498 18=215b,2471,336a,33f1 18.=2499 19=2151,2472,336b,33f2 19.=249a 2=b2 2,=1f103 2.=2489 20=2473,336c,33f3
20.=249b 21=3251,336d,33f4 22=3252,336e,33f5 23=2154,3253,336f,33f6 24=3254,3370,33f7 25=2156,3255,33f8 26=3256,33f9
27=3257,33fa 28=3258,33fb 29=3259,33fc 3=b3 3,=1f104 3.=248a 30=325a,33fd 31=325b,33fe 32=325c 33=325d 34=be,325e
35=2157,325f 36=32b1 37=32b2 38=215c,32b3 39=32b4 4,=1f105 4.=248b 40=32b5 41=32b6 42=32b7 43=32b8 44=32b9
45=2158,32ba 46=32bb 47=32bc 48=32bd 49=32be 5,=1f106 5.=248c 50=32bf 56=215a 58=215d 6,=1f107 6.=248d 7,=1f108
7.=248e 78=215e 8,=1f109 8.=248f 9,=1f10a 9.=2490 :=fe13,fe55 ::==2a74 ;=37e,fe14,fe54 <=226e,fe64
==207c,208c,2260,fe66 ===2a75 ====2a76 >=226f,fe65 ?=fe16,fe56 ?!=2048 ??=2047 @=fe6b
A=c0-c5,100,102,104,1cd,1de,1e0,1fa,200,202,226,1d2c,1e00,1ea0-1eb6/2,212b,3382,1d49c,1d504,1d538 AE=c6,1e2,1fc,1d2d
AU=3373 Am=33df B=1d2e,1e02,1e04,1e06,212c,1d505,1d539 Bq=33c3
C=c7,106-10c/2,1e08,2102,2103,212d,216d,a7f2,1d49e,1f12b CD=1f12d Ckg=33c6 Co.=33c7
D=d0,10e,110,1d30,1e0a-1e12/2,2145,216e,1d49f,1d507,1d53b DJ=1f190 DZ=1c4,1f1 Dz=1c5,1f2
E=c8-cb,112-11a/2,204,206,228,1d31,1e14-1e1c/2,1eb8-1ec6/2,2130,1d508,1d53c F=1e1e,2109,2131,338c,a7f3,1d509,1d53d
FAX=213b G=11c-122/2,1e6,1f4,1e20,1d4a2,1d50a,1d53e GB=3387 GHz=3393 GPa=33ac Gy=33c9
H=124,126,21e,1e22-1e2a/2,210b-210d,a7f8 HP=33cb HV=1f14a Hg=32cc Hz=3390
I=cc-cf,128-130/2,1cf,208,20a,1e2c,1e2e,1ec8,1eca,2110,2111,2160,1d540 II=2161 III=2162 IJ=132 IU=337a IV=2163 IX=2168
J=134,1d4a5,1d541 K=136,1e8,1e30,1e32,1e34,212a,1d4a6,1d542 KB=3385 KK=33cd KM=33ce
L=139-141/2,1e36-1e3c/2,2112,216c,1d543 LJ=1c7 LTD=32cf Lj=1c8 M=1e3e,1e40,1e42,2133,216f,33c1,1d544 MB=3386 MC=1f16a
MD=1f16b MHz=3392 MPa=33ab MR=1f16c MV=33b9,1f14b MW=33bf N=d1,143,145,147,14a,1f8,1e44-1e4a/2,2115,1d4a9 NJ=1ca
Nj=1cb No=2116 O=d2-d6,d8,14c,14e,150,1a0,1d1,1ea,1ec,1fe,20c,20e,22a-230/2,1d3c,1e4c-1e52/2,1ecc-1ee2/2,1d4aa,1d546
OE=152 P=1d3e,1e54,1e56,2119,1d4ab PH=33d7 PPM=33d9 PPV=1f14e PR=33da PTE=3250 Pa=33a9 Q=211a,a7f4,1d4ac
R=154,156,158,210,212,1d3f,1e58-1e5e/2,211b-211d,1f12c Rs=20a8 S=15a-160/2,218,1e60-1e68/2,a7f1,1f12a SD=1f14c SM=2120
SS=1e9e,1f14d Sv=33dc T=162,164,166,21a,1d40,1e6a-1e70/2 TEL=2121 TH=de THz=3394 TM=2122
U=d9-dc,168-172/2,1af,1d3-1db/2,214,216,1d41,1e72-1e7a/2,1ee4-1ef0/2 V=1e7c,1e7e,2164,2c7d,33b6 VI=2165 VII=2166
VIII=2167 Vm=33de W=174,1d42,1e80-1e88/2,33bc WC=1f14f WZ=1f12e Wb=33dd X=1e8a,1e8c,2169 XI=216a XII=216b
Y=dd,176,178,232,1e8e,1ef2-1ef8/2 Z=179,17b,17d,1e90,1e92,1e94,2124,2128 [=fe47 \=fe68 ]=fe48 _=fe33,fe34,fe4d-fe4f
`=1fef a=aa,e0-e5,101,103,105,1ce,1df,1e1,1fb,201,203,227,1d43,1e01,1e9a,1ea1-1eb7/2,2090,1d4b6 a.m.=33c2 a/c=2100
a/s=2101 ae=e6,1e3,1fd,10783 b=1d47,1e03,1e05,1e07,1d4b7 bar=3374 c=e7,107-10d/2,1d9c,1e09,217d,1d4b8 c/o=2105
c/u=2106 cal=3388 cc=33c4 cd=33c5 cm=339d cm2=33a0 cm3=33a4 d=f0,10f,111,1d48,1d9e,1e0b-1e13/2,2146,217e,1d4b9 dB=33c8
da=3372 dl=3397 dm=3377 dm2=3378 dm3=3379 dz=1c6,1f3
e=e8-eb,113-11b/2,205,207,229,1d49,1e15-1e1d/2,1eb9-1ec7/2,2091,212f,2147 eV=32ce erg=32cd f=1da0,1e1f,1d4bb ff=fb00
ffi=fb03 ffl=fb04 fi=fb01 fl=fb02 fm=3399 g=11d-123/2,1e7,1f5,1d4d,1e21,210a,338d gal=33ff
h=125,127,21f,2b0,1e23-1e2b/2,1e96,2095,210e,210f,10795 hPa=3371 ha=33ca
i=ec-ef,129-131/2,1d0,209,20b,1d62,1e2d,1e2f,1ec9,1ecb,2071,2139,2148,2170,1d6a4 ii=2171 iii=2172 ij=133 in=33cc
iv=2173 ix=2178 j=135,1f0,2b2,2149,2c7c k=137,138,1e9,1d4f,1e31,1e33,1e35,2096,33c0 kA=3384 kHz=3391 kPa=33aa kV=33b8
kW=33be kcal=3389 kg=338f kl=3398 km=339e km2=33a2 km3=33a6 kt=33cf l=13a-142/2,2e1,1e37-1e3d/2,2097,2113,217c,3395
lj=1c9 lm=33d0 ln=33d1 log=33d2 lx=33d3 m=1d50,1e3f,1e41,1e43,2098,217f,339b m2=33a1 m3=33a5 mA=3383 mV=33b7 mW=33bd
mb=33d4 mg=338e mil=33d5 ml=3396 mm=339c mm2=339f mm3=33a3 mol=33d6 ms=33a7,33b3 ms2=33a8
n=f1,144,146,148,149,14b,1f9,1d51,1e45-1e4b/2,207f,2099 nA=3381 nF=338b nV=33b5 nW=33bb nj=1cc nm=339a ns=33b1
o=ba,f2-f6,f8,14d,14f,151,1a1,1d2,1eb,1ed,1ff,20d,20f,22b-231/2,1d52,1e4d-1e53/2,1ecd-1ee3/2,2092,2134,107a2 oV=3375
oe=153,a7f9 p=1d56,1e55,1e57,209a p.m.=33d8 pA=3380 pF=338a pV=33b4 pW=33ba pc=3376 ps=33b0 q=107a5
r=155,157,159,211,213,2b3,1d63,1e59-1e5f/2 rad=33ad rads=33ae rads2=33af
s=15b-161/2,17f,219,2e2,1e61-1e69/2,1e9b,209b,33b2 sr=33db ss=df st=fb05,fb06
t=163,165,167,21b,1d57,1e6b-1e71/2,1e97,209c th=fe
u=f9-fc,169-173/2,1b0,1d4-1dc/2,215,217,1d58,1d64,1e73-1e7b/2,1ee5-1ef1/2 v=1d5b,1d65,1e7d,1e7f,2174 vi=2175 vii=2176
viii=2177 w=175,2b7,1e81-1e89/2,1e98 x=2e3,1e8b,1e8d,2093,2179 xi=217a xii=217b
y=fd,ff,177,233,2b8,1e8f,1e99,1ef3-1ef9/2 z=17a,17c,17e,1dbb,1e91,1e93,1e95 {=fe37,fe5b }=fe38,fe5c
"""
